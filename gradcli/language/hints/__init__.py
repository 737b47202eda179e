"""What an error message proposes: spelling, argument types, shapes that would fit."""
