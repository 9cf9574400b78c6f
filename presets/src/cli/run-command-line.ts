import { stripVTControlCharacters } from "node:util";
import { type CommandDef, renderUsage, runCommand } from "citty";
import { findCommand, nameOf } from "./command-line.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";

/** Run one command line of a program. Never throws: whatever goes wrong becomes a line on standard error and an exit code. */
export async function runCommandLine(root: CommandDef<any>, args: readonly string[]): Promise<void> {
  // Whoever read the output may leave before its end (`| head`); that is no error of ours.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
  try {
    await run(root, args);
  } catch (error) {
    process.exitCode = report(error, root);
    // A failed start may leave timers and sockets behind that nobody waits for.
    process.exit();
  }
}

async function run(root: CommandDef<any>, args: readonly string[]): Promise<void> {
  const found = await findCommand(root, args);
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

function report(error: unknown, root: CommandDef<any>): number {
  if (error instanceof CommandFailed) {
    console.error(error.message);
    return error.exitCode;
  }
  console.error(`${nameOf(root)} met an error that it did not expect; this is a defect.`);
  console.error(error);
  return EXIT.internal;
}
