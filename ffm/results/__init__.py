"""Documents, tables and folders of results: all that later rooms read, and the estimates made from them."""
