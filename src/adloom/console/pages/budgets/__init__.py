"""Budgets: today's spend, and the course of a day."""
