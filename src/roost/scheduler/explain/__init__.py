"""Explanations: the rejections of each rule, the nearest hosts, and the changes that would fit."""
