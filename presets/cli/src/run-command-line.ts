import { stripVTControlCharacters } from "node:util";
import { type CommandDef, renderUsage, runCommand } from "citty";
import { ConfigUnusable, findShortage, SHORTAGE_WORDS } from "@portico/core";
import { findCommand, nameOf } from "./command-line.ts";
import { CommandFailed, EXIT } from "./exit-codes.ts";
import { type Program, withProgram } from "./program.ts";

/**
 * Run one command line of a program. Never throws: every error becomes a line on standard error and an exit code. `program`: the commands are run
 * with its preset.
 */
export async function runCommandLine(root: CommandDef<any>, args: readonly string[], program?: Program): Promise<void> {
  // The reader of the output may close the pipe early (`| head`). That is not an error.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
    });
  }
  try {
    await run(root, args, program);
  } catch (error) {
    process.exitCode = report(error, root);
    // A failed start may leave timers and sockets open. Nothing waits for them.
    process.exit();
  }
}

async function run(root: CommandDef<any>, args: readonly string[], program: Program | undefined): Promise<void> {
  const found = await findCommand(root, args);
  if (found.wantsHelp) {
    const usage = await renderUsage(
      found.command,
      found.parentName ? ({ meta: { name: found.parentName } } as CommandDef) : undefined,
    );
    console.log(process.stdout.isTTY ? usage : stripVTControlCharacters(usage));
    return;
  }
  const { command } = found;
  const marked: CommandDef = {
    ...command,
    run: (context) => command.run?.({ ...context, args: withProgram(context.args, program) }),
  };
  await runCommand(marked, { rawArgs: [...found.args] });
}

function report(error: unknown, root: CommandDef<any>): number {
  const shortage = findShortage(error);
  const words = shortage ? `${SHORTAGE_WORDS[shortage]}. ` : "";
  if (error instanceof CommandFailed) {
    console.error(words + error.message);
    return error.exitCode;
  }
  // A package that the settings need may be missing.
  if (error instanceof ConfigUnusable) {
    console.error(error.message);
    return EXIT.config;
  }
  if (shortage) {
    console.error(`${words}${nameOf(root)} cannot continue (${(error as Error).message})`);
    return EXIT.unavailable;
  }
  console.error(`${nameOf(root)} failed with an unexpected error; this is a defect.`);
  console.error(error);
  return EXIT.internal;
}
