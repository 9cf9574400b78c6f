/** Nodes that may be executed at most once, and the kinds of their effects. */
export const ONCE = { call: "http", tool: "tool", ask: "agent" } as const;

/** What the definitions use. */
export interface EveryNodeOptions {
  /** Address of an HTTP server. `POST /call` may not be repeated; `/each` and `/child` carry an `Idempotency-Key`. */
  readonly effects: string;
  /** Id of a tool that takes `{ text }` and may not be repeated. */
  readonly tool: string;
  /** Length of the `wait` node. */
  readonly wait: string;
}

/** Definitions by id. `main` takes a number `n` and has a node of every kind; `child` is its sub-workflow. */
export function everyNode({ effects, tool, wait }: EveryNodeOptions): Readonly<Record<"main" | "child", object>> {
  const call = (name: string, more: object = {}) => ({
    type: "http",
    with: { method: "POST", url: `${effects}/${name}`, body: { n: "${{ parameters.n }}", run: "${{ run.id }}" }, ...more },
  });
  const child = { nodes: { c: call("child", { key: true }) }, outputs: { status: "${{ nodes.c.output.status }}" } };
  const main = {
    settings: { timeout: "1h" },
    nodes: {
      start: { type: "transform", with: { value: "${{ parameters.n }}" } },
      call: { needs: ["start"], ...call("call") },
      pick: { type: "branch", needs: ["call"], with: { cases: { even: "nodes.start.output % 2 == 0" }, else: "odd" } },
      think: { type: "model", needs: ["pick.even"], with: { prompt: "Run ${{ run.id }}" } },
      tool: { type: "tool", needs: ["pick.odd"], with: { tool, arguments: { text: "${{ run.id }}" } } },
      each: {
        type: "map",
        needs: ["think", "tool"],
        with: { items: [1, 2, 3], nodes: { hit: call("each", { key: true }) }, result: "${{ nodes.hit.output.status }}" },
      },
      again: {
        type: "loop",
        needs: ["start"],
        with: {
          maxIterations: 3,
          nodes: { n: { type: "transform", with: { value: "${{ index }}" } } },
          result: "${{ nodes.n.output }}",
        },
      },
      pause: { type: "wait", needs: ["again"], with: { for: wait } },
      sub: { type: "workflow", needs: ["each"], with: { workflow: "child", parameters: { n: "${{ parameters.n }}" } } },
      compute: {
        type: "code",
        needs: ["start"],
        with: { language: "javascript", source: "return input + 1", input: "${{ parameters.n }}" },
      },
      ask: { type: "agent", needs: ["pause"], with: { agent: "helper", prompt: "${{ run.id }}" } },
      bad: { type: "fail", needs: ["compute"], onError: "continue", with: { message: "as it should" } },
      ok: { type: "human_gate", needs: ["sub", "ask", "bad"], with: { title: "Go on?" } },
    },
    outputs: { n: "${{ nodes.compute.output }}", each: "${{ nodes.each.output }}", sub: "${{ nodes.sub.output.status }}" },
  };
  return { main, child };
}
