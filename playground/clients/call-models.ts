import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const { PROXY, SAFE_TOKEN } = process.env; // the address, such as http://127.0.0.1:49152, without /v1; the safe token
const messages = new Anthropic({ baseURL: PROXY, apiKey: SAFE_TOKEN });
const chat = new OpenAI({ baseURL: `${PROXY}/v1`, apiKey: SAFE_TOKEN });

const question = { model: "demo", messages: [{ role: "user" as const, content: "Hello" }] };
const message = await messages.messages.create({ ...question, max_tokens: 100 });
const completion = await chat.chat.completions.create(question);
console.log(message.content, completion.choices);
