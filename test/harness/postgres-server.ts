import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { temporaryFolder } from "./portico-process.ts";
import { freePort } from "./ports.ts";

const run = promisify(execFile);

/** A PostgreSQL server of a test's own, which it may stop. Every user is let in without a password, but for `access`. */
export interface PostgresServer extends AsyncDisposable {
  /** A connection URL of the superuser, on 127.0.0.1. */
  readonly url: string;
  readonly port: number;
  start(): Promise<void>;
  /** `immediate` is a crash: the server recovers at its next start. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
}

/** Options of `postgresServer`. */
export interface PostgresServerOptions {
  /** Settings of the server. A file in them has to be readable for the server: `files` makes such ones. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Texts of files in the server's folder, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf. */
  readonly access?: readonly string[];
}

/** Whether this machine has the programs of a PostgreSQL server; with `CI` set, their absence is an error. */
export function hasPostgresServer(): boolean {
  const isThere = binaries() !== undefined;
  if (!isThere && process.env["CI"]) throw new Error("CI has to have the programs of a PostgreSQL server");
  return isThere;
}

/** Make a server in a folder of its own, and start it. */
export async function postgresServer({
  settings = {},
  files = {},
  access = ["host all all 127.0.0.1/32 trust"],
}: PostgresServerOptions = {}): Promise<PostgresServer> {
  const bin = binaries();
  if (bin === undefined) throw new Error("No PostgreSQL server is installed");
  const folder = temporaryFolder();
  const owner = serverUser();
  if (owner) chownSync(folder.path, owner.uid, owner.gid);
  const data = join(folder.path, "data");
  const port = await freePort();
  const call = (program: string, args: readonly string[]) => run(join(bin, program), [...args], { ...owner, cwd: folder.path });

  await call("initdb", ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(data, name), text);
    chmodSync(join(data, name), 0o600);
    if (owner) chownSync(join(data, name), owner.uid, owner.gid);
  }
  writeFileSync(join(data, "pg_hba.conf"), `${access.join("\n")}\n`);
  const all = { fsync: "off", listen_addresses: "127.0.0.1", port: `${port}`, unix_socket_directories: "", ...settings };
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'`);
  writeFileSync(join(data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
  const control = (...args: readonly string[]) =>
    call("pg_ctl", ["-D", data, "-w", "-s", "-l", join(folder.path, "log"), ...args]);

  const server: PostgresServer = {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    start: async () => void (await control("start")),
    stop: async (mode = "fast") => void (await control("stop", "-m", mode)),
    async [Symbol.asyncDispose]() {
      // It may be stopped already.
      await server.stop("immediate").catch(() => {});
      folder.remove();
    },
  };
  await server.start();
  return server;
}

/** Debian keeps the programs of each version in a folder of its own. */
function binaries(): string | undefined {
  const debian = "/usr/lib/postgresql";
  const versions = statSync(debian, { throwIfNoEntry: false }) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [...versions.map((version) => join(debian, version, "bin")), ...(process.env["PATH"] ?? "").split(":")];
  return folders.find((folder) => ["initdb", "pg_ctl"].every((name) => statSync(join(folder, name), { throwIfNoEntry: false })));
}

/** The server refuses to run as root. */
function serverUser(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (flag: string) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return spawnSync("id", ["postgres"]).status === 0 ? { uid: idOf("-u"), gid: idOf("-g") } : undefined;
}
