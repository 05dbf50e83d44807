"""A regular package, so that one of the same name among the installed ones does not hide it."""
