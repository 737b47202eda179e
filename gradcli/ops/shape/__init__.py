"""Views, reshaping, splitting, joining, rearranging."""
