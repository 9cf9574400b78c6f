import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const issueCommand = defineCommand({
  meta: { name: "issue", description: "Issue a safe token and print it; it is shown only once" },
  args: {
    provider: { type: "string", required: true, valueHint: "id", description: "Provider that the token is permanently bound to" },
    label: { type: "string", valueHint: "text", description: "Label that says what the token is for" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { issueToken } = await import("../token-store.ts");
    console.log(await issueToken(args, { providerId: args.provider, label: args.label }));
  },
});

const listCommand = defineCommand({
  meta: { name: "list", description: "List safe tokens, without their values" },
  args: {
    json: { type: "boolean", description: "Print a JSON array" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { listTokens } = await import("../token-store.ts");
    const tokens = await listTokens(args);
    if (args.json) return console.log(JSON.stringify(tokens, null, 2));
    const { table } = await import("../terminal.ts");
    if (tokens.length === 0) return console.error("There are no safe tokens.");
    console.log(
      table(
        ["TOKEN ID", "PROVIDER", "CREATED", "LAST USED", "LABEL"],
        tokens.map(({ tokenId, providerId, createdAt, lastUsedAt, label }) => [
          ...[tokenId, providerId, createdAt],
          ...[lastUsedAt ?? "never", label ?? ""],
        ]),
      ),
    );
  },
});

const revokeCommand = defineCommand({
  meta: { name: "revoke", description: "Revoke one safe token, or all; a running service refuses them immediately" },
  args: {
    tokenId: { type: "positional", required: false, description: "Id of the token, from `portico token list`" },
    all: { type: "boolean", description: "Revoke every safe token" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { revokeTokens } = await import("../token-store.ts");
    const revoked = await revokeTokens(args, { tokenId: args.tokenId, all: args.all ?? false });
    console.log(revoked === 1 ? "Revoked 1 safe token." : `Revoked ${revoked} safe tokens.`);
  },
});

const rotateCommand = defineCommand({
  meta: { name: "rotate", description: "Replace the instance's own token of a service, and print the new one" },
  args: {
    service: { type: "positional", required: true, description: "agent or workflow" },
    ...settingsFlags,
  },
  async run({ args }) {
    const { rotateOwnToken } = await import("../token-store.ts");
    console.log(await rotateOwnToken(args, args.service));
  },
});

export const tokenCommand = defineCommand({
  meta: { name: "token", description: "Issue, list and revoke safe tokens of the model proxy; rotate the instance's own tokens" },
  subCommands: { issue: issueCommand, list: listCommand, revoke: revokeCommand, rotate: rotateCommand },
});
