"""The command line: one module per noun. `import holdfast` never comes here, so typer and rich cost nobody else."""
