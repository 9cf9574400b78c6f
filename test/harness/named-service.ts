import type { ports } from "@portico/core";

export interface NamedService {
  readonly connections: ports.RealtimeConnections;
  /** The events of the service, in order: `joined ada`, `ada says word {"n":1}`, `gone ada`. */
  readonly seen: readonly string[];
  /** Resolves when `seen` holds the entry `times` times. */
  saw(entry: string, times?: number): Promise<void>;
  /** The latest connection of that name. */
  idOf(name: string): string;
}

/** Serves a realtime path to every client, under the name that the client presents, and records its events. */
export function serveNamed(realtime: ports.Realtime, more: Partial<ports.RealtimeService<string>> = {}): NamedService {
  const seen: string[] = [];
  const ids = new Map<string, string>();
  const waiting = new Set<() => void>();
  const see = (entry: string) => {
    seen.push(entry);
    for (const look of waiting) look();
  };
  const connections = realtime.serve<string>({
    surface: "agent",
    path: "/live/",
    admit: async (hello) => (hello as { name?: string }).name ?? "somebody",
    joined(socket) {
      ids.set(socket.who, socket.id);
      see(`joined ${socket.who}`);
    },
    receive: (socket, event, payload) => see(`${socket.who} says ${event} ${JSON.stringify(payload)}`),
    gone: (socket) => see(`gone ${socket.who}`),
    ...more,
  });
  return {
    connections,
    seen,
    saw: (entry, times = 1) =>
      new Promise((resolve) => {
        const look = () => {
          if (seen.filter((each) => each === entry).length < times) return;
          waiting.delete(look);
          resolve();
        };
        waiting.add(look);
        look();
      }),
    idOf: (name) => ids.get(name) ?? "",
  };
}
