import { defineCommand } from "citty";
import { type SettingsFlags, settingsFlags } from "../settings-flags.ts";

const serviceFlags = {
  url: {
    type: "string",
    valueHint: "url",
    description: "Address of the agent service; default: the service that uses the data directory",
  },
  ...settingsFlags,
} as const;

const ofAgent = {
  agent: { type: "positional", required: true, valueHint: "agent id", description: "Id of the agent" },
} as const;
const ofDocument = {
  ...ofAgent,
  name: {
    type: "positional",
    required: true,
    valueHint: "name",
    description: "Name of the document, from `portico memory list`",
  },
} as const;

const listCommand = defineCommand({
  meta: {
    name: "list",
    description: "List what an agent remembers of the instance's owner, or the agents that remember something",
  },
  args: {
    agent: { type: "positional", required: false, valueHint: "agent id", description: "Id of the agent; default: all agents" },
    json: { type: "boolean", description: "Print a JSON array" },
    ...serviceFlags,
  },
  async run({ args }) {
    const [{ printableJson, table }, memory] = await Promise.all([import("../terminal.ts"), memoryOf(args)]);
    const found = args.agent === undefined ? await memory.agents() : await memory.documents(args.agent);
    if (args.json) return console.log(printableJson(found, 2));
    if (found.length === 0) return console.error("Nothing is remembered.");
    const rows = found.map((each) =>
      "agentId" in each
        ? [each.agentId, `${each.documents}`, each.updatedAt]
        : [each.name, `${each.characters}`, each.writtenBy, each.updatedAt],
    );
    console.log(table(args.agent === undefined ? AGENTS : DOCUMENTS, rows));
  },
});

const AGENTS = ["AGENT", "DOCUMENTS", "CHANGED"];
const DOCUMENTS = ["NAME", "CHARACTERS", "WRITTEN BY", "CHANGED"];

const showCommand = defineCommand({
  meta: { name: "show", description: "Print the text of a document" },
  args: { ...ofDocument, ...serviceFlags },
  async run({ args }) {
    const [{ printable }, memory] = await Promise.all([import("../terminal.ts"), memoryOf(args)]);
    const { text } = await memory.read(args.agent, args.name);
    // A program gets the text as it is. On a terminal, control characters would do something.
    process.stdout.write(process.stdout.isTTY ? `${printable(text)}\n` : text);
  },
});

const writeCommand = defineCommand({
  meta: { name: "write", description: "Write a document: a new one, or in place of the present text" },
  args: {
    ...ofDocument,
    text: {
      type: "positional",
      required: true,
      valueHint: "text",
      description: "The text; `-` reads it from the standard input",
    },
    ...serviceFlags,
  },
  async run({ args }) {
    const { text } = await import("node:stream/consumers");
    const written = args.text === "-" ? await text(process.stdin) : args.text;
    const { created } = await (await memoryOf(args)).write(args.agent, args.name, written);
    console.log(`The document is ${created ? "created" : "replaced"}.`);
  },
});

const eraseCommand = defineCommand({
  meta: { name: "erase", description: "Erase a document, or all that an agent remembers of the instance's owner" },
  args: {
    ...ofAgent,
    name: { type: "positional", required: false, valueHint: "name", description: "Name of the document; default: all documents" },
    yes: { type: "boolean", description: "Do not ask for confirmation before all documents are erased" },
    ...serviceFlags,
  },
  async run({ args }) {
    const { agent, name } = args;
    if (name === undefined && !args.yes) {
      const { confirm } = await import("../terminal.ts");
      await confirm(`All that the agent ${agent} remembers of you will be erased. Type the agent's id to continue: `, agent);
    }
    const erased = await (await memoryOf(args)).erase(agent, name);
    console.log(`Erased: ${erased === 1 ? "1 document" : `${erased} documents`}.`);
  },
});

export const memoryCommand = defineCommand({
  meta: { name: "memory", description: "Show, change and erase what agents remember of the instance's owner; default: list" },
  default: "list",
  subCommands: { list: listCommand, show: showCommand, write: writeCommand, erase: eraseCommand },
});

async function memoryOf(args: SettingsFlags & { readonly url?: string | undefined }) {
  const [{ readSettings }, { findMemory }] = await Promise.all([import("../read-settings.ts"), import("../find-memory.ts")]);
  return findMemory((await readSettings(args)).settings, args.url);
}
