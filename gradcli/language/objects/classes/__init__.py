"""Classes of programs and their instances; built-in classes that a program may extend."""
