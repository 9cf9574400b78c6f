import { spawn } from "node:child_process";

/**
 * Tell systemd that the service is ready, if the unit waits for that (`Type=notify`). Node.js has no datagram sockets of the Unix domain,
 * so systemd's own program `systemd-notify` sends the message: the unit needs `NotifyAccess=all`. `failed` hears why no message was sent.
 */
export function tellServiceManager(failed: (reason: string) => void, env: NodeJS.ProcessEnv = process.env): void {
  if (!env["NOTIFY_SOCKET"]) return;
  const program = spawn("systemd-notify", ["--ready"], { env, stdio: "ignore" });
  program.once("error", ({ message }) => failed(message));
  program.once("exit", (code, signal) => {
    if (code !== 0) failed(`systemd-notify ended with ${code ?? signal}`);
  });
}
