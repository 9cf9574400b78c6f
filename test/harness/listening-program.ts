import { spawn } from "node:child_process";
import { connect } from "node:net";
import { setTimeout as wait } from "node:timers/promises";

const STOP_MS = 10_000;
const SAID = 4000;

/** How a program is started that listens on a port of 127.0.0.1. */
export interface ListeningProgram {
  readonly command: string;
  readonly args: readonly string[];
  readonly port: number;
  readonly cwd: string;
  /** Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** With which it is stopped. Default: SIGTERM, and SIGKILL if it takes too long. */
  readonly signal?: NodeJS.Signals;
}

/** Start a program, and wait until it listens. Throws with the end of its standard error if it ends instead. */
export async function startListening({
  command,
  args,
  port,
  cwd,
  env,
  signal = "SIGTERM",
}: ListeningProgram): Promise<AsyncDisposable> {
  const child = spawn(command, args, { cwd, ...(env && { env }), stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said = (said + text).slice(-SAID)));
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  while (!(await isListening(port))) {
    if (child.exitCode !== null) throw new Error(`${command} did not start: ${said}`);
    await wait(20);
  }
  return {
    async [Symbol.asyncDispose]() {
      child.kill(signal);
      const late = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
      await exited;
      clearTimeout(late);
    },
  };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}
