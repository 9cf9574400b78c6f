import type { Listeners } from "./platform-options.ts";

/**
 * Whose pages may call another surface of a process that serves the console: those of the settings, and the agent service's own, which is
 * where the console stands. It is known when that listens, and nobody's until then.
 */
export function withConsoleOrigin(allowedOrigins: readonly string[], listeners: Listeners): () => readonly string[] {
  return () => {
    const { agent } = listeners();
    return agent === undefined ? allowedOrigins : [...allowedOrigins, new URL(agent).origin];
  };
}
