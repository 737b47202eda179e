"""Functions of arrays, to the contract of exactness; they know no tensor."""
