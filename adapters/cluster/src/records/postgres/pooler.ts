import { type ClientBase, Client, type ClientConfig } from "pg";

/** SQLSTATE of a statement that a session does not know, and of a name that another client of the session has taken. */
const FORGOTTEN: ReadonlySet<unknown> = new Set(["26000", "42P05"]);
/** A pooler without a free session does not answer. */
const ANSWER_MS = 2_000;

const SESSION = "SELECT pg_backend_pid() AS pid";

/** Whether a connection goes through a pooler. The server tells its session's number at the beginning; poolers tell a number of their own. */
export async function isPooled(client: ClientBase): Promise<boolean> {
  const told = (client as ClientBase & { readonly processID?: number }).processID;
  const { rows } = await client.query<{ pid: number }>(SESSION);
  return told !== undefined && told !== rows[0]!.pid;
}

/**
 * Whether a pooler forgets the prepared statements of a client that it gives another session. False if it gave the client the same session
 * again, or has no second one now. Throws the driver's error.
 */
export async function forgetsStatements(config: ClientConfig): Promise<boolean> {
  const [one, other] = [new Client(config), new Client({ ...config, query_timeout: ANSWER_MS })];
  for (const client of [one, other]) client.on("error", () => {});
  try {
    await Promise.all([one.connect(), other.connect()]);
    const prepared = { name: "portico-pooler", text: SESSION };
    await one.query(prepared);
    // The pooler gives the session that has become free to the next transaction.
    const hasBegun = await other.query("BEGIN").then(
      () => true,
      () => false,
    );
    return hasBegun && (await one.query(prepared).then(() => false, isForgotten));
  } finally {
    await Promise.all([one, other].map((client) => client.end().catch(() => {})));
  }
}

function isForgotten(error: unknown): boolean {
  if (error instanceof Error && "code" in error && FORGOTTEN.has(error.code)) return true;
  throw error;
}
