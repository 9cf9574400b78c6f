import { defineCommand } from "citty";
import { installCommand } from "../own-command.ts";
import type { PackageOrder } from "../scaffold/make-package.ts";

const name = {
  type: "positional",
  required: true,
  description: "Name of the package and of its folder, such as tea-house",
} as const;
const json = { type: "boolean", description: "Print a JSON object" } as const;

const pluginCommand = defineCommand({
  meta: { name: "plugin", description: "Create a plugin: a contract, a guard, handlers and their tests" },
  args: { name, json },
  run: ({ args }) => make({ kind: "plugin", name: args.name }, args.json),
});

const adapterCommand = defineCommand({
  meta: { name: "adapter", description: "Create an adapter, with the conformance suite of its port" },
  args: {
    name,
    port: {
      type: "string",
      valueHint: "port",
      description: "Port that it fills: tools (default), records, models, identity or workflow-nodes",
    },
    "own-protocol": { type: "boolean", description: "Create a model provider whose service has a protocol of its own" },
    json,
  },
  run: ({ args }) => make({ kind: "adapter", name: args.name, port: args.port, hasOwnProtocol: args["own-protocol"] }, args.json),
});

const presetCommand = defineCommand({
  meta: { name: "preset", description: "Create a preset: adapters, plugins and settings that start like portico itself" },
  args: { name, json },
  run: ({ args }) => make({ kind: "preset", name: args.name }, args.json),
});

export const newCommand = defineCommand({
  meta: { name: "new", description: "Create your own plugin, adapter or preset in a new folder" },
  subCommands: { plugin: pluginCommand, adapter: adapterCommand, preset: presetCommand },
});

async function make(order: PackageOrder, asJson = false): Promise<void> {
  const { makePackage } = await import("../scaffold/make-package.ts");
  const { folder, files, dependencies } = await makePackage(order, process.cwd());
  const install = installCommand(folder, dependencies);
  const next = [`cd ${order.name}`, ...(install === undefined ? [] : [install]), "npm test"];
  if (asJson) return console.log(JSON.stringify({ folder, files, next }, null, 2));
  console.log(`Created the ${order.kind} "${order.name}":\n`);
  for (const file of files) console.log(`  ${order.name}/${file}`);
  console.log(`\nNext:\n\n${next.map((command) => `  ${command}`).join("\n")}\n\nIts README.md describes the files.`);
}
