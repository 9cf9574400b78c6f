import type { Protocol } from "../conversation.ts";
import type { RequestBody } from "../request-body.ts";

/** The call that the code makes. */
interface CodedCall {
  /** Of the proxy, with `/v1`. */
  readonly url: string;
  readonly protocol: Protocol;
  readonly body: RequestBody;
}

export type CodeLanguage = "curl" | "typescript" | "python";

/** The environment variable that has the safe token. */
export const TOKEN_VARIABLE = "SAFE_TOKEN";

/** A program that makes the call and prints the answer. It reads the token from the environment. */
export const requestCode: Readonly<Record<CodeLanguage, (call: CodedCall) => string>> = {
  curl: writeCurl,
  typescript: ({ protocol, ...call }) => (protocol === "messages" ? typescriptMessages(call) : typescriptChat(call)),
  python: ({ protocol, ...call }) => (protocol === "messages" ? pythonMessages(call) : pythonChat(call)),
};

type Call = Omit<CodedCall, "protocol">;

/** The body is the command's input: arguments of commands have a maximum length, and images do not fit. */
function writeCurl({ url, protocol, body }: CodedCall): string {
  const path = protocol === "messages" ? "/messages" : "/chat/completions";
  return [
    `curl ${body["stream"] === true ? "-N " : ""}${url}${path} \\`,
    `  -H "Authorization: Bearer $${TOKEN_VARIABLE}" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  --data-binary @- <<'JSON'`,
    literal(body, "json", 0),
    "JSON",
  ].join("\n");
}

function typescriptMessages({ url, body }: Call): string {
  const isStream = body["stream"] === true;
  return [
    `import Anthropic from "@anthropic-ai/sdk";`,
    "",
    `const client = new Anthropic({ baseURL: ${JSON.stringify(withoutVersion(url))}, apiKey: process.env.${TOKEN_VARIABLE} });`,
    `const ${isStream ? "stream" : "message"} = await client.messages.create(${literal(body, "typescript", 0)});`,
    ...(isStream
      ? [
          "for await (const event of stream) {",
          `  if (event.type === "content_block_delta" && event.delta.type === "text_delta") process.stdout.write(event.delta.text);`,
          "}",
        ]
      : ["console.log(message.content);"]),
  ].join("\n");
}

function typescriptChat({ url, body }: Call): string {
  const isStream = body["stream"] === true;
  return [
    `import OpenAI from "openai";`,
    "",
    `const client = new OpenAI({ baseURL: ${JSON.stringify(url)}, apiKey: process.env.${TOKEN_VARIABLE} });`,
    `const ${isStream ? "stream" : "completion"} = await client.chat.completions.create(${literal(body, "typescript", 0)});`,
    isStream
      ? `for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");`
      : "console.log(completion.choices[0]?.message);",
  ].join("\n");
}

function pythonMessages({ url, body }: Call): string {
  const isStream = body["stream"] === true;
  return [
    "import os",
    "",
    "from anthropic import Anthropic",
    "",
    `client = Anthropic(base_url=${JSON.stringify(withoutVersion(url))}, api_key=os.environ["${TOKEN_VARIABLE}"])`,
    `${isStream ? "stream" : "message"} = client.messages.create(`,
    ...pythonArguments(body),
    ")",
    ...(isStream
      ? [
          "for event in stream:",
          `    if event.type == "content_block_delta" and event.delta.type == "text_delta":`,
          `        print(event.delta.text, end="", flush=True)`,
        ]
      : ["print(message.content)"]),
  ].join("\n");
}

function pythonChat({ url, body }: Call): string {
  const isStream = body["stream"] === true;
  return [
    "import os",
    "",
    "from openai import OpenAI",
    "",
    `client = OpenAI(base_url=${JSON.stringify(url)}, api_key=os.environ["${TOKEN_VARIABLE}"])`,
    `${isStream ? "stream" : "completion"} = client.chat.completions.create(`,
    ...pythonArguments(body),
    ")",
    ...(isStream
      ? [
          "for chunk in stream:",
          "    if chunk.choices:",
          `        print(chunk.choices[0].delta.content or "", end="", flush=True)`,
        ]
      : ["print(completion.choices[0].message)"]),
  ].join("\n");
}

/** The names of the fields are those of the arguments. */
function pythonArguments(body: RequestBody): readonly string[] {
  const step = stepOf("python");
  return Object.entries(body).map(([name, value]) => `${" ".repeat(step)}${name}=${literal(value, "python", step)},`);
}

/** This client library adds the version itself. */
function withoutVersion(url: string): string {
  return url.replace(/\/v1$/, "");
}

type Syntax = "json" | "typescript" | "python";

/** Longer values are written in several lines. */
const LINE_LENGTH = 90;
const JSON_WORDS = { true: "true", false: "false", null: "null" };
const WORDS = { json: JSON_WORDS, typescript: JSON_WORDS, python: { true: "True", false: "False", null: "None" } };

/** A JSON value as code. The first line is not indented. */
function literal(value: unknown, syntax: Syntax, indent: number): string {
  if (typeof value === "boolean" || value === null) return WORDS[syntax][`${value}`];
  // The escapes of JSON mean the same in all languages.
  if (typeof value !== "object") return JSON.stringify(value);
  const items = itemsOf(value, syntax);
  if (items.length === 0) return Array.isArray(value) ? "[]" : "{}";
  const [open, close] = Array.isArray(value) ? ["[", "]"] : ["{", "}"];
  const oneLine = items.map(([name, item]) => name + literal(item, syntax, 0)).join(", ");
  const pad = syntax !== "python" && open === "{" ? " " : "";
  if (!oneLine.includes("\n") && oneLine.length + indent <= LINE_LENGTH) return `${open}${pad}${oneLine}${pad}${close}`;
  const step = indent + stepOf(syntax);
  const lines = items.map(([name, item]) => `${" ".repeat(step)}${name}${literal(item, syntax, step)}`);
  const end = syntax === "json" ? "" : ",";
  return `${open}\n${lines.join(",\n")}${end}\n${" ".repeat(indent)}${close}`;
}

/** Spaces of one level. */
function stepOf(syntax: Syntax): number {
  return syntax === "python" ? 4 : 2;
}

function itemsOf(value: object, syntax: Syntax): readonly (readonly [string, unknown])[] {
  if (Array.isArray(value)) return value.map((item: unknown) => ["", item] as const);
  return Object.entries(value)
    .filter(([, item]) => item !== undefined)
    .map(([name, item]) => [
      `${syntax === "typescript" && /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name)}: `,
      item,
    ]);
}
