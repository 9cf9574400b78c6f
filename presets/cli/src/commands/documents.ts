import { defineCommand } from "citty";
import type { Copied } from "../cluster/documents.ts";
import { printable } from "../terminal.ts";
import { settingsFlags } from "../settings-flags.ts";

const copyFlags = {
  dir: { type: "positional", required: true, description: "Folder with the folders agents and workflows" },
  prune: { type: "boolean", description: "Remove documents that the other side does not have" },
  force: { type: "boolean", description: "Overwrite documents that were changed on the other side" },
  json: { type: "boolean", description: "Print a JSON object" },
  ...settingsFlags,
} as const;

const pushCommand = defineCommand({
  meta: { name: "push", description: "Copy agents and workflow definitions of a folder into the cluster's database" },
  args: copyFlags,
  async run({ args }) {
    const { pushDocuments } = await import("../cluster/documents.ts");
    tell(await pushDocuments(args, args.dir, { prune: args.prune ?? false, force: args.force ?? false }), args.json);
  },
});

const pullCommand = defineCommand({
  meta: { name: "pull", description: "Copy agents and workflow definitions of the cluster's database into a folder" },
  args: copyFlags,
  async run({ args }) {
    const { pullDocuments } = await import("../cluster/documents.ts");
    tell(await pullDocuments(args, args.dir, { prune: args.prune ?? false, force: args.force ?? false }), args.json);
  },
});

const listCommand = defineCommand({
  meta: { name: "list", description: "List the agents and workflow definitions of the cluster's database" },
  args: { json: { type: "boolean", description: "Print a JSON array" }, ...settingsFlags },
  async run({ args }) {
    const { listDocuments } = await import("../cluster/documents.ts");
    const names = await listDocuments(args);
    if (args.json) return console.log(JSON.stringify(names, null, 2));
    if (names.length === 0) return console.error("There are no documents.");
    console.log(names.join("\n"));
  },
});

function tell({ written, removed, unchanged, leftOut }: Copied, asJson: boolean | undefined): void {
  for (const name of leftOut) console.error(`${printable(name)} is not copied: it is not text of at most 1 MiB`);
  if (asJson) return console.log(JSON.stringify({ written, removed, unchanged, leftOut }, null, 2));
  for (const name of written) console.log(`written  ${name}`);
  for (const name of removed) console.log(`removed  ${name}`);
  console.log(`${written.length} written, ${removed.length} removed, ${unchanged.length} unchanged`);
}

export const documentsCommand = defineCommand({
  meta: { name: "documents", description: "Copy agents and workflow definitions into the database of a cluster, and back" },
  subCommands: { push: pushCommand, pull: pullCommand, list: listCommand },
});
