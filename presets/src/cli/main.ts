import { defineCommand } from "citty";
import { runCommandLine } from "./run-command-line.ts";

const portico = defineCommand({
  meta: { name: "portico", description: "Servers for agents: model proxy, agent service, workflows" },
  subCommands: {
    start: async () => (await import("./commands/start.ts")).startCommand,
    init: async () => (await import("./commands/init.ts")).initCommand,
    console: async () => (await import("./commands/console.ts")).consoleCommand,
    token: async () => (await import("./commands/token.ts")).tokenCommand,
    attachments: async () => (await import("./commands/attachments.ts")).attachmentsCommand,
    user: async () => (await import("./commands/user.ts")).userCommand,
    approvals: async () => (await import("./commands/approvals.ts")).approvalsCommand,
    grant: async () => (await import("./commands/grant.ts")).grantCommand,
    workflow: async () => (await import("./commands/workflow.ts")).workflowCommand,
    schedule: async () => (await import("./commands/schedule.ts")).scheduleCommand,
    documents: async () => (await import("./commands/documents.ts")).documentsCommand,
    migrate: async () => (await import("./commands/migrate.ts")).migrateCommand,
    move: async () => (await import("./commands/move.ts")).moveCommand,
    backup: async () => (await import("./commands/backup.ts")).backupCommand,
    restore: async () => (await import("./commands/restore.ts")).restoreCommand,
    audit: async () => (await import("./commands/audit.ts")).auditCommand,
    usage: async () => (await import("./commands/usage.ts")).usageCommand,
    config: async () => (await import("./commands/config.ts")).configCommand,
    doctor: async () => (await import("./commands/doctor.ts")).doctorCommand,
    new: async () => (await import("./commands/new.ts")).newCommand,
    openapi: async () => (await import("./commands/openapi.ts")).openapiCommand,
    asyncapi: async () => (await import("./commands/asyncapi.ts")).asyncapiCommand,
  },
});

/** Run one command line. Never throws: every error becomes a line on standard error and an exit code. */
export async function main(args: readonly string[]): Promise<void> {
  if (args.length === 1 && (args[0] === "--version" || args[0] === "-v")) {
    const { VERSION } = await import("../platform/version.ts");
    console.log(VERSION);
    return;
  }
  await runCommandLine(portico, args);
}
