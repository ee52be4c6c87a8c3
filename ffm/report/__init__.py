"""Results for people and other tools: terminal, HTML, exported traces."""
