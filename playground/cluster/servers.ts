import { once } from "node:events";
import { connect } from "node:net";

const servers = [
  {
    name: "PostgreSQL",
    variable: "PORTICO_POSTGRES_URL",
    usual: "postgres://postgres@127.0.0.1:5432/postgres",
    port: 5432,
    help: "docker run --rm -d -p 5432:5432 -e POSTGRES_HOST_AUTH_METHOD=trust postgres:17",
  },
  {
    name: "Redis",
    variable: "PORTICO_REDIS_URL",
    usual: "redis://127.0.0.1:6379",
    port: 6379,
    help: "docker run --rm -d -p 6379:6379 redis:7",
  },
] as const;

/** The servers that the environment names, or those of this machine. Throws a text that says how to start a missing one. */
export async function findServers(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const { name, variable, usual, port, help } of servers) {
    const url = process.env[variable] ?? usual;
    const { hostname, port: given } = new URL(url);
    if (!(await listens(hostname, Number(given || port)))) {
      throw new Error(`No ${name} server answers. Start one, or set ${variable} to its address:\n\n  ${help}\n`);
    }
    found[variable] = url;
  }
  return found;
}

async function listens(host: string, port: number): Promise<boolean> {
  const socket = connect({ host, port, timeout: 2000 });
  try {
    await Promise.race([
      once(socket, "connect"),
      once(socket, "timeout").then(() => Promise.reject(new Error("The server does not answer"))),
    ]);
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
