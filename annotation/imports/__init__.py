"""An import's life: its files arrive, are mapped, previewed, stored whole or not at all, and undone."""
