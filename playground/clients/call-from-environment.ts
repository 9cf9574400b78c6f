import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

// The code has no address and no key: both libraries read them from environment variables.
const [messages, chat] = [new Anthropic(), new OpenAI()];

const question = { model: "demo", messages: [{ role: "user" as const, content: "Hello" }] };
for await (const event of messages.messages.stream({ ...question, max_tokens: 100 })) {
  if (event.type === "content_block_delta" && event.delta.type === "text_delta") process.stdout.write(event.delta.text);
}
for await (const { choices } of await chat.chat.completions.create({ ...question, stream: true })) {
  process.stdout.write(choices[0]?.delta.content ?? "\n");
}
