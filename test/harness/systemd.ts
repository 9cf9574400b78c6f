import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { root } from "../rooms/repository.ts";
import type { CommandResult } from "./command-room.ts";
import { temporaryFolder } from "./portico-process.ts";

/** A small machine with a systemd of its own. It shares programs and network with this machine, and has its own files and processes. */
export interface SystemdMachine extends AsyncDisposable {
  /** Run a program there, as root: `systemctl`, `cat`. */
  run(...command: readonly string[]): Promise<CommandResult>;
}

/** Whether this machine has the programs of systemd; with `CI` set, their absence is an error. */
export function hasSystemd(): boolean {
  const isThere = ["systemd-analyze", "dbus-daemon"].every((name) => spawnSync(name, ["--version"]).error === undefined);
  if (!isThere && process.env["CI"]) throw new Error("CI has to have systemd and dbus");
  return isThere;
}

/** Whether a systemd of its own can run here: that takes root, and a kernel that lets it make namespaces and control groups. */
export function canRunSystemd(): boolean {
  if (!hasSystemd() || process.getuid?.() !== 0) return false;
  const { path, remove } = temporaryFolder();
  try {
    const tries = `mount -t cgroup2 none ${path} && mkdir ${path}/portico-try && rmdir ${path}/portico-try`;
    return spawnSync("unshare", ["--mount", "--pid", "--ipc", "--uts", "--cgroup", "--fork", "sh", "-c", tries]).status === 0;
  } finally {
    remove();
  }
}

/** Targets that every unit names. */
const TARGETS = ["basic", "sysinit", "shutdown", "multi-user", "network-online", "sockets"];

/** Start a machine with these files, by their absolute paths. `/opt/portico` is this checkout. */
export async function startSystemd(files: Readonly<Record<string, string>>): Promise<SystemdMachine> {
  const folder = temporaryFolder();
  const write = (path: string, text: string) => {
    const file = join(folder.path, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  for (const name of TARGETS) write(`/etc/systemd/system/${name}.target`, "[Unit]\nDefaultDependencies=no\n");
  // systemd-run talks to systemd over the bus.
  for (const name of ["dbus.service", "dbus.socket"])
    write(`/etc/systemd/system/${name}`, readFileSync(`/usr/lib/systemd/system/${name}`, "utf8"));
  for (const [path, text] of Object.entries(files)) write(path, text);

  const script = join(import.meta.dirname, "systemd-machine.sh");
  const namespaces = ["--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"];
  const child = spawn("unshare", [...namespaces, script, folder.path, root, process.execPath], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (said += text));
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const first = () => firstProcess(child);
  const run: SystemdMachine["run"] = (...command) =>
    new Promise((resolve) => {
      const args = ["--target", String(first()), "--mount", "--pid", "--ipc", "--uts", "--cgroup", "--", ...command];
      const options = {
        env: { PATH: "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C", PAGER: "cat" },
        maxBuffer: 16 * 1024 * 1024,
      };
      execFile("nsenter", args, options, (error, stdout, stderr) =>
        resolve({ code: error ? (typeof error.code === "number" ? error.code : null) : 0, stdout, stderr }),
      );
    });
  const close = async () => {
    child.kill("SIGKILL");
    await exited;
    removeGroups(folder.path);
    folder.remove();
  };
  while (first() === undefined || !/^(?:running|degraded|starting)/.test((await run("systemctl", "is-system-running")).stdout)) {
    if (child.exitCode !== null) {
      await close();
      throw new Error(`systemd did not start: ${said}`);
    }
    await wait(50);
  }
  await run("systemctl", "start", "dbus.service");
  return { run, [Symbol.asyncDispose]: close };
}

/** The first process of the machine: the only child of `unshare`. */
function firstProcess({ pid }: ChildProcess): number | undefined {
  try {
    const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ");
    return child ? Number(child) : undefined;
  } catch {
    return undefined;
  }
}

/** The control groups of a machine that has ended. They were made in its own mount, so they are looked up in a new one. */
function removeGroups(folder: string): void {
  const name = folder.slice(folder.lastIndexOf("/") + 1);
  const groups = `${folder}.cgroups`;
  const group = `${groups}/${name}`;
  // Killed processes leave their groups a little later.
  const remove = `mount -t cgroup2 none ${groups}; for at in $(seq 100); do
    find ${group} -depth -type d -exec rmdir {} + 2> /dev/null; [ -d ${group} ] || break; sleep 0.05; done`;
  spawnSync("unshare", ["--mount", "sh", "-c", remove]);
  rmSync(groups, { recursive: true, force: true });
}
