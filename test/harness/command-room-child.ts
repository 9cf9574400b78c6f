import { setImmediate as nextTurn } from "node:timers/promises";
import { main } from "../../presets/cli/src/main.ts";
import type { RoomCommand, RoomMessage } from "./command-room.ts";

// Runs commands of `portico`, one after another, each as if the process were its own.

/** How a command ends that ends its process. */
class Exited extends Error {}

const { exit } = process;
process.on("disconnect", () => exit.call(process, 0));
/** The code of the command's first exit. The command continues from there with an error. What it does then must not count. */
let exited: number | undefined;
process.exit = (code) => {
  exited ??= Number(code ?? process.exitCode ?? 0);
  throw new Exited();
};

const send = (message: RoomMessage): void => void process.send?.(message);

process.on("message", (command: RoomCommand) => {
  void run(command).then((code) => send({ code }));
});

async function run({ args, cwd, env }: RoomCommand): Promise<number> {
  // Of a service that was started before.
  for (const event of ["SIGINT", "SIGTERM", "uncaughtException"]) process.removeAllListeners(event);
  process.chdir(cwd);
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.exitCode = undefined;
  exited = undefined;
  const undo = (["stdout", "stderr"] as const).map((name) => {
    const stream = process[name];
    const { write } = stream;
    const listeners = stream.listeners("error");
    stream.write = (chunk: string | Uint8Array, ...more: unknown[]) => {
      if (exited === undefined) send({ name, text: typeof chunk === "string" ? chunk : Buffer.from(chunk).toString() });
      const told = more.find((each) => typeof each === "function") as ((error?: Error) => void) | undefined;
      if (told) process.nextTick(told);
      return true;
    };
    return () => {
      stream.write = write;
      // Each command adds its own.
      for (const each of stream.listeners("error")) {
        if (!listeners.includes(each)) stream.off("error", each as () => void);
      }
    };
  });
  try {
    await main(args);
    await nextTurn();
  } catch (error) {
    if (!(error instanceof Exited)) send({ name: "stderr", text: `The command threw: ${String(error)}\n` });
  } finally {
    for (const each of undo) each();
  }
  return exited ?? Number(process.exitCode ?? 0);
}
