import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const filterFlags = {
  user: { type: "string", valueHint: "id", description: "Only attachments of this user" },
  "older-than": {
    type: "string",
    valueHint: "duration",
    description: "Only attachments that were neither uploaded nor used by a query for this time, such as 30d",
  },
  json: { type: "boolean", description: "Print JSON" },
  ...settingsFlags,
} as const;

const listCommand = defineCommand({
  meta: { name: "list", description: "List the attachments of users, the oldest first" },
  args: filterFlags,
  async run({ args }) {
    const { listAttachments } = await import("../attachments.ts");
    const filter = { userId: args.user, olderThan: args["older-than"] };
    const found: Parameters<Parameters<typeof listAttachments>[2]>[0][] = [];
    await listAttachments(args, filter, (attachment) => found.push(attachment));
    if (args.json) {
      const { printableJson } = await import("../terminal.ts");
      return console.log(printableJson(found, 2));
    }
    const { table } = await import("../terminal.ts");
    if (found.length === 0) return console.error("There are no such attachments.");
    console.log(
      table(
        ["ATTACHMENT ID", "USER", "BYTES", "UPLOADED", "LAST USED", "NAME"],
        found.map(({ attachmentId, userId, size, createdAt, usedAt, name }) => [
          ...[attachmentId, userId, `${size}`, createdAt, usedAt ?? ""],
          name,
        ]),
      ),
    );
  },
});

const removeCommand = defineCommand({
  meta: {
    name: "remove",
    description: "Remove one attachment, or all that the options name; a running service notices immediately",
  },
  args: {
    attachmentId: { type: "positional", required: false, description: "Id of the attachment, from `portico attachments list`" },
    ...filterFlags,
  },
  async run({ args }) {
    const { removeAttachments } = await import("../attachments.ts");
    const filter = { attachmentId: args.attachmentId, userId: args.user, olderThan: args["older-than"] };
    const { removed, kept, bytes } = await removeAttachments(args, filter);
    if (args.json) return console.log(JSON.stringify({ removed, kept, bytes }, null, 2));
    console.log(`Removed ${removed.length === 1 ? "1 attachment" : `${removed.length} attachments`} (${bytes} bytes).`);
    if (kept.length > 0) console.log(`Kept because a query uses them: ${kept.length}.`);
  },
});

export const attachmentsCommand = defineCommand({
  meta: { name: "attachments", description: "List and remove attachments of users" },
  subCommands: { list: listCommand, remove: removeCommand },
});
