import { execFile, execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { promisify } from "node:util";
import { temporaryFolder } from "./portico-process.ts";
import { freePort } from "./ports.ts";
import { ask } from "./postgres.ts";

const run = promisify(execFile);

/** A PostgreSQL server of a test's own, which it may stop. Every user is let in without a password, but for `access`. */
export interface PostgresServer extends AsyncDisposable {
  /** A connection URL of the superuser, on 127.0.0.1. */
  readonly url: string;
  readonly port: number;
  start(): Promise<void>;
  /** `immediate` is a crash: the server recovers at its next start. */
  stop(mode?: "fast" | "immediate"): Promise<void>;
  /** Do as a person with psql would. Answers the last statement's rows. */
  ask(sql: string): Promise<readonly any[]>;
}

/** A server that archives its write-ahead log. */
export interface ArchivingPostgresServer extends PostgresServer {
  /** Make a base backup with a command of `pg_basebackup`, in which `BASE` and `PORT` stand for the folder and the port. */
  backUp(command: string): Promise<PostgresBackup>;
  /** Resolves when all completed segments are in the archive. */
  archived(): Promise<void>;
}

/** A base backup, and the archive of the log since. Both last as long as the server that made them. */
export interface PostgresBackup {
  readonly base: string;
  readonly archive: string;
}

/** Options of `postgresServer`. */
export interface PostgresServerOptions {
  /** Settings of the server. A file in them has to be readable for the server: `files` makes such ones. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Texts of files in the server's folder, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Lines of pg_hba.conf. */
  readonly access?: readonly string[];
  /** Archive the write-ahead log. */
  readonly archives?: boolean;
  /** Begin with this backup, at the state of a point in time. Default: an empty server. */
  readonly restored?: { readonly from: PostgresBackup; readonly until: string };
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
  access = ["host all,replication all 127.0.0.1/32 trust"],
  archives = false,
  restored,
}: PostgresServerOptions = {}): Promise<ArchivingPostgresServer> {
  const bin = binaries();
  if (bin === undefined) throw new Error("No PostgreSQL server is installed");
  const folder = temporaryFolder();
  const owner = serverUser();
  if (owner) chownSync(folder.path, owner.uid, owner.gid);
  const data = join(folder.path, "data");
  const port = await freePort();
  const runAs = (program: string, args: readonly string[]) => run(program, [...args], { ...owner, cwd: folder.path });
  const call = (program: string, args: readonly string[]) => runAs(join(bin, program), args);

  const archive = join(folder.path, "archive");
  mkdirSync(archive);
  if (owner) chownSync(archive, owner.uid, owner.gid);

  if (restored) {
    await runAs("cp", ["-R", restored.from.base, data]);
    await runAs("touch", [join(data, "recovery.signal")]);
  } else await call("initdb", ["-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]);
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(data, name), text);
    chmodSync(join(data, name), 0o600);
    if (owner) chownSync(join(data, name), owner.uid, owner.gid);
  }
  writeFileSync(join(data, "pg_hba.conf"), `${access.join("\n")}\n`);
  const archiving = archives && { archive_mode: "on", archive_command: `cp %p ${archive}/%f` };
  const recovery = restored && {
    restore_command: `cp ${restored.from.archive}/%f %p`,
    recovery_target_time: restored.until,
    recovery_target_action: "promote",
  };
  const all = {
    ...recovery,
    fsync: "off",
    listen_addresses: "127.0.0.1",
    port: `${port}`,
    unix_socket_directories: "",
    ...archiving,
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = '${value}'`);
  writeFileSync(join(data, "postgresql.auto.conf"), `${lines.join("\n")}\n`);
  const control = (...args: readonly string[]) =>
    call("pg_ctl", ["-D", data, "-w", "-s", "-l", join(folder.path, "log"), ...args]);

  const server: ArchivingPostgresServer = {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    port,
    start: async () => void (await control("start")),
    stop: async (mode = "fast") => void (await control("stop", "-m", mode)),
    ask: (sql) => ask(server.url, sql),
    async backUp(command) {
      const base = join(folder.path, "base");
      const [program, ...args] = command.replace("BASE", base).replace("PORT", `${port}`).split(" ");
      await call(program!, args);
      return { base, archive };
    },
    async archived() {
      const [{ segment }] = (await ask(server.url, "SELECT pg_walfile_name(pg_current_wal_lsn()) AS segment")) as [
        { segment: string },
      ];
      // The present segment is not complete, so those before it are what counts.
      const last = async () =>
        (await ask(server.url, "SELECT last_archived_wal AS last FROM pg_stat_archiver"))[0]!.last as string;
      while (Number.parseInt((await last()).slice(8, 24), 16) < Number.parseInt(segment.slice(8, 24), 16) - 1) await wait(50);
    },
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
