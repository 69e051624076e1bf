"""Language models as engines serve them: prompts, tokens one after the other, their memory and energy."""
