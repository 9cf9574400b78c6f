import { describe, expect, it } from "vitest";
import { writeWhen } from "../../../console/src/blocks/when.ts";

/** A Thursday, in the time zone of the test. */
const now = new Date(2030, 0, 10, 12, 0, 0);
const when = (...at: readonly [year: number, month: number, day: number, hour?: number, minute?: number, second?: number]) =>
  writeWhen(new Date(...(at as [number, number, number])), now);

describe("the time of the web console", () => {
  it("is relative within the day", () => {
    expect(when(2030, 0, 10, 11, 59, 30)).toBe("just now");
    expect(when(2030, 0, 10, 11, 57)).toBe("3 minutes ago");
    expect(when(2030, 0, 10, 9, 30)).toBe("2 hours ago");
    expect(when(2030, 0, 10, 12, 0, 30)).toBe("in a moment");
    expect(when(2030, 0, 10, 14, 0)).toBe("in 2 hours");
  });

  it("names yesterday, then the weekday, then the date, by calendar days", () => {
    expect(when(2030, 0, 9, 23, 0)).toMatch(/^yesterday, 11:00|^yesterday, 23:00/);
    expect(when(2030, 0, 11, 18, 0)).toMatch(/^tomorrow, /);
    expect(when(2030, 0, 8, 12, 0)).toMatch(/^Tuesday, 12:00/);
    expect(when(2030, 0, 4, 12, 0)).toMatch(/^Friday, 12:00/);
    expect(when(2030, 0, 3, 12, 0)).toBe("Jan 3");
    expect(when(2029, 11, 31, 12, 0)).toBe("Dec 31, 2029");
  });

  it("says how long ago a time was within an hour, also across midnight", () => {
    const early = new Date(2030, 0, 10, 0, 10);
    expect(writeWhen(new Date(2030, 0, 9, 23, 50), early)).toBe("20 minutes ago");
    expect(writeWhen(new Date(2030, 0, 9, 22, 50), early)).toMatch(/^yesterday, /);
  });
});
