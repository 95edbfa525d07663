"""What happened: logs and their trainers to pilot runs, and what is wrong with one."""
