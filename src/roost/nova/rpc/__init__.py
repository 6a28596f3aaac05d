"""The message queue of Nova: RabbitMQ, with the envelope of oslo.messaging."""
