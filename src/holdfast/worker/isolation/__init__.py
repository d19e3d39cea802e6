"""Tasks in processes of their own (`isolate=True`), which can be killed without hurting others."""
