import { stripVTControlCharacters } from "node:util";
import { type CommandDef, defineCommand, renderUsage, runCommand } from "citty";
import { findCommand } from "./command-line.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

const portico = defineCommand({
  meta: { name: "portico", description: "Servers for agents: model proxy, agent service, workflows" },
  subCommands: {
    start: async () => (await import("./commands/start.ts")).startCommand,
    token: async () => (await import("./commands/token.ts")).tokenCommand,
    grant: async () => (await import("./commands/grant.ts")).grantCommand,
    workflow: async () => (await import("./commands/workflow.ts")).workflowCommand,
    config: async () => (await import("./commands/config.ts")).configCommand,
    doctor: async () => (await import("./commands/doctor.ts")).doctorCommand,
    openapi: async () => (await import("./commands/openapi.ts")).openapiCommand,
  },
});

/** Run one command line. Never throws: whatever goes wrong becomes a line on standard error and an exit code. */
export async function main(args: readonly string[]): Promise<void> {
  // Whoever read the output may leave before its end (`| head`); that is no error of ours.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
  try {
    await run(args);
  } catch (error) {
    process.exitCode = report(error);
    // A failed start may leave timers and sockets behind that nobody waits for.
    process.exit();
  }
}

async function run(args: readonly string[]): Promise<void> {
  if (args.length === 1 && (args[0] === "--version" || args[0] === "-v")) {
    const { VERSION } = await import("../platform/version.ts");
    console.log(VERSION);
    return;
  }
  const found = await findCommand(portico as CommandDef, args);
  if (found.wantsHelp) {
    const usage = await renderUsage(
      found.command,
      found.parentName ? ({ meta: { name: found.parentName } } as CommandDef) : undefined,
    );
    console.log(process.stdout.isTTY ? usage : stripVTControlCharacters(usage));
    return;
  }
  await runCommand(found.command, { rawArgs: [...found.args] });
}

function report(error: unknown): number {
  if (error instanceof CommandFailed) {
    console.error(error.message);
    return error.exitCode;
  }
  console.error("portico met an error that it did not expect; this is a defect.");
  console.error(error);
  return EXIT.internal;
}
