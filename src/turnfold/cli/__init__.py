"""The command line. One module a command; `main` registers them and maps errors to exit codes."""
