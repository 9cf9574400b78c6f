import { defineCommand } from "citty";
import { runCommandLine } from "./run-command-line.ts";
import { serviceCommands } from "./service-commands.ts";

/** All commands of the program. */
export const portico = defineCommand({
  meta: { name: "portico", description: "Servers for agents: model proxy, agent service, workflows" },
  subCommands: {
    start: async () => (await import("./commands/start.ts")).startCommand,
    init: async () => (await import("./commands/init.ts")).initCommand,
    ...serviceCommands,
    documents: async () => (await import("./commands/documents.ts")).documentsCommand,
    migrate: async () => (await import("./commands/migrate.ts")).migrateCommand,
    move: async () => (await import("./commands/move.ts")).moveCommand,
    new: async () => (await import("./commands/new.ts")).newCommand,
  },
});

/** Run one command line. Never throws: every error becomes a line on standard error and an exit code. */
export async function main(args: readonly string[]): Promise<void> {
  if (args.length === 1 && (args[0] === "--version" || args[0] === "-v")) {
    const { VERSION } = await import("@portico/presets/platform/version");
    console.log(VERSION);
    return;
  }
  await runCommandLine(portico, args);
}
