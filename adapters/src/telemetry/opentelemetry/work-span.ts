import { type Attributes, type Context, ROOT_CONTEXT, SpanStatusCode, trace } from "@opentelemetry/api";
import type { ports } from "@portico/core";
import type { EndedWork } from "./ended-work.ts";
import type { Instruments } from "./instruments.ts";
import { contentAttributes } from "./work-content.ts";
import { shortened } from "./request-record.ts";
import { parseTraceparent, traceparentOf } from "./traceparent.ts";

export interface WorkSpans {
  begin(work: ports.WorkBegin, ended: (work: EndedWork) => void): ports.WorkTrace;
  /** The `traceparent` of the present span. */
  traceparent(): string | undefined;
}

/** Spans of turns and their parts, tools, runs and nodes. Names follow the generative-AI conventions where they have one. */
export function createWorkSpans({ tracer, contexts }: Instruments, hasContent = false): WorkSpans {
  return {
    traceparent: () => traceparentOf(trace.getSpanContext(contexts.active())),
    begin(work, ended) {
      const beganAt = performance.now();
      const { name, attributes } = described(work);
      const parent = parentOf(work, contexts.active());
      const beganMsAgo = "beganMsAgo" in work ? Math.max(0, work.beganMsAgo ?? 0) : 0;
      const startTime = Date.now() - beganMsAgo;
      const span = tracer.startSpan(name, { attributes, ...(beganMsAgo > 0 && { startTime }) }, parent);
      const within = trace.setSpan(parent, span);
      let isOver = false;
      return {
        run: (run) => contexts.with(within, run),
        ...(hasContent && {
          content(read: () => ports.WorkContent) {
            if (!isOver && span.isRecording()) span.setAttributes(contentAttributes(work.kind, read()));
          },
        }),
        end({ error } = {}) {
          if (isOver) return;
          isOver = true;
          const code = shortened(error);
          if (code !== undefined) span.setAttribute("error.type", code).setStatus({ code: SpanStatusCode.ERROR });
          if (work.kind === "phase") return span.end(startTime + Math.max(0, work.lastedMs));
          span.end();
          ended({ kind: work.kind, error: code, beganAt, endedAt: performance.now() });
        },
      };
    },
  };
}

/**
 * Accepted work continues the trace that was stored with it. What happens to be active where the engine begins it may belong to
 * another work.
 */
function parentOf(work: ports.WorkBegin, active: Context): Context {
  if (work.kind !== "turn" && work.kind !== "run") return active;
  const stored = parseTraceparent(work.traceparent);
  return stored ? trace.setSpanContext(ROOT_CONTEXT, stored) : ROOT_CONTEXT;
}

function described(work: ports.WorkBegin): { readonly name: string; readonly attributes: Attributes } {
  switch (work.kind) {
    case "turn":
      return {
        name: `invoke_agent ${shortened(work.agent)}`,
        attributes: {
          "gen_ai.operation.name": "invoke_agent",
          "gen_ai.agent.id": shortened(work.agent),
          "portico.run.id": work.run,
          "portico.turn.id": work.turn,
        },
      };
    case "phase":
      return { name: shortened(work.phase)!, attributes: { "portico.phase": shortened(work.phase) } };
    case "tool":
      return {
        name: `execute_tool ${shortened(work.tool)}`,
        attributes: {
          "gen_ai.operation.name": "execute_tool",
          "gen_ai.tool.name": shortened(work.tool),
          "portico.tool.source": work.source,
        },
      };
    case "run":
      return {
        name: `workflow ${shortened(work.workflow)}`,
        attributes: {
          "portico.workflow.id": shortened(work.workflow),
          "portico.run.id": work.run,
          "portico.attempt": work.attempt,
        },
      };
    case "node":
      return {
        name: `node ${shortened(work.type)}`,
        attributes: {
          "portico.node.type": shortened(work.type),
          "portico.node.id": shortened(work.node),
          "portico.run.id": work.run,
          "portico.attempt": work.attempt,
        },
      };
  }
}
