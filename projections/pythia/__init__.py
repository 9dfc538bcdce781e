"""The reviewer's instructions, prompts and assessments: their format and tables."""
