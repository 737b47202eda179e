"""Who hears what ran: the recorder and its listeners."""
