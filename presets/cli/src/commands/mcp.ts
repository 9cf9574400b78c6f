import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

const server = { type: "positional", required: true, description: "Name of the MCP server in the settings" } as const;

const loginCommand = defineCommand({
  meta: {
    name: "login",
    description: "Connect an MCP server to an account: print an address, and wait until a person agrees there",
  },
  args: { server, ...settingsFlags },
  async run({ args }) {
    const { login } = await import("../mcp-accounts.ts");
    const scope = await login(args, args.server, (url) => {
      console.error("Open this address in a browser of this machine, within 10 minutes:");
      console.log(url);
    });
    console.error(`Connected ${args.server}${scope === undefined ? "" : `, with the scopes ${scope}`}.`);
  },
});

const logoutCommand = defineCommand({
  meta: { name: "logout", description: "Forget the account of an MCP server, and ask its service to revoke the access" },
  args: { server, ...settingsFlags },
  async run({ args }) {
    const { logout } = await import("../mcp-accounts.ts");
    console.log((await logout(args, args.server)) ? `Disconnected ${args.server}.` : `${args.server} was not connected.`);
  },
});

const statusCommand = defineCommand({
  meta: { name: "status", description: "Show which MCP servers are connected to an account" },
  args: { json: { type: "boolean", description: "Print a JSON array" }, ...settingsFlags },
  async run({ args }) {
    const { statuses } = await import("../mcp-accounts.ts");
    const found = await statuses(args);
    if (args.json) return console.log(JSON.stringify(found, null, 2));
    if (found.length === 0) return console.error("No MCP server of the settings uses an account of the instance.");
    const { table } = await import("../terminal.ts");
    console.log(
      table(
        ["SERVER", "STATE", "CONNECTED", "SCOPES"],
        found.map(({ server: name, state, connectedAt, scope }) => [name, state, connectedAt ?? "", scope ?? ""]),
      ),
    );
  },
});

export const mcpCommand = defineCommand({
  meta: { name: "mcp", description: "Connect MCP servers to accounts, by OAuth" },
  subCommands: { login: loginCommand, logout: logoutCommand, status: statusCommand },
});
