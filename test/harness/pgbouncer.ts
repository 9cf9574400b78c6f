import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startListening } from "./listening-program.ts";
import { temporaryFolder } from "./portico-process.ts";
import { freePort } from "./ports.ts";

/** A PgBouncer in its own process and folder, before a database. */
export interface PgBouncer extends AsyncDisposable {
  /** The database, through the pooler. */
  readonly url: string;
  /** End it with all connections, and start it again. */
  restart(): Promise<void>;
}

export interface PgBouncerOptions {
  readonly poolMode: "session" | "transaction";
  /** Most sessions at the server. */
  readonly sessions: number;
}

const program = (): string => process.env["PORTICO_TEST_PGBOUNCER"] ?? "pgbouncer";
/** The first version that keeps prepared statements of clients in transaction mode. */
const KEEPS_STATEMENTS = 1.21;

/** Its version, such as 1.21: that of the program which `PORTICO_TEST_PGBOUNCER` names, or of this machine's. Undefined without it. With `CI` set, its absence is an error. */
export function pgBouncerVersion(): number | undefined {
  const { stdout, error } = spawnSync(program(), ["--version"], { encoding: "utf8" });
  const version = error ? undefined : /^PgBouncer (\d+\.\d+)/.exec(stdout)?.[1];
  if (version === undefined && process.env["CI"]) throw new Error("CI has to have pgbouncer");
  return version === undefined ? undefined : Number(version);
}

/** Whether this version keeps the prepared statements of clients. */
export function keepsStatements(): boolean {
  return (pgBouncerVersion() ?? 0) >= KEEPS_STATEMENTS;
}

/** Start a PgBouncer before the database of a URL. */
export async function startPgBouncer(url: string, { poolMode, sessions }: PgBouncerOptions): Promise<PgBouncer> {
  const folder = temporaryFolder();
  const port = await freePort();
  const { hostname, port: far, username, password, pathname } = new URL(url);
  const login = `user=${decodeURIComponent(username)}${password ? ` password=${decodeURIComponent(password)}` : ""}`;
  const file = join(folder.path, "pgbouncer.ini");
  writeFileSync(
    file,
    `[databases]
* = host=${hostname} port=${far || 5432} ${login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${poolMode}
default_pool_size = ${sessions}
max_client_conn = 200
ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout
${keepsStatements() ? "max_prepared_statements = 200" : ""}
`,
  );
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "postgres"] : [];
  if (user.length > 0) {
    chmodSync(folder.path, 0o755);
    chmodSync(file, 0o644);
    execFileSync("id", ["postgres"]);
  }
  const start = () => startListening({ command: program(), args: [...user, file], port, cwd: folder.path, signal: "SIGKILL" });
  let running = await start();
  const through = new URL(url);
  [through.hostname, through.port, through.pathname] = ["127.0.0.1", `${port}`, pathname];
  return {
    url: through.href,
    async restart() {
      await running[Symbol.asyncDispose]();
      running = await start();
    },
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]();
      folder.remove();
    },
  };
}
