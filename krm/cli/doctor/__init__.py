"""What is wrong with a Porch server and what is on it, and what to do: what each check reads, finds and says."""
