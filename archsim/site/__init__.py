"""The manual as a folder of linked pages: its own pages, and those that are made from commands, specs, equations and schemas."""
