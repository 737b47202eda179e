"""`gradcli mcp`: gradcli's questions as tools of agents, by the Model Context Protocol."""
