"""Why a text cannot be read, in plain words, with what to write instead."""
