"""Where items come from: plans that ask models for parallel families of dialogues and texts."""
