/** Colours and patterns of the canvases, taken from the style sheet so that themes stay in one place. */

export interface Palette {
  readonly ink: string;
  readonly soft: string;
  readonly faint: string;
  readonly line: string;
  readonly paper: string;
  readonly bad: string;
  readonly shade: string;
  readonly series: readonly string[];
  /** Fills of owners, by node order; repeats after eight, the letters do not. */
  readonly owners: readonly string[];
}

/** Resolves style-sheet variables to colours of the current theme. */
export function readPalette(): Palette {
  const probe = document.createElement('span');
  document.body.append(probe);
  const colour = (name: string): string => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const list = (name: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => colour(`${name}-${index + 1}`));
  const palette = {
    ink: colour('ink'),
    soft: colour('soft'),
    faint: colour('faint'),
    line: colour('line'),
    paper: colour('paper'),
    bad: colour('bad'),
    shade: colour('shade'),
    series: list('series', 5),
    owners: list('owner', 8),
  };
  probe.remove();
  return palette;
}

export type PatternName = 'stripes' | 'hatch' | 'dots' | 'cross';

const patternSize = 6;

/** A repeating pattern in `ink` over nothing; told apart without colour. */
export function makePattern(context: CanvasRenderingContext2D, name: PatternName, ink: string): CanvasPattern {
  const tile = document.createElement('canvas');
  const scale = Math.max(1, Math.round(devicePixelRatio));
  tile.width = patternSize * scale;
  tile.height = patternSize * scale;
  const pen = tile.getContext('2d') as CanvasRenderingContext2D;
  pen.scale(scale, scale);
  pen.strokeStyle = ink;
  pen.fillStyle = ink;
  pen.lineWidth = 1.5;
  pen.beginPath();
  switch (name) {
    case 'stripes':
      pen.rect(1, 0, 2.5, patternSize);
      pen.fill();
      break;
    case 'dots':
      pen.rect(1, 1, 2, 2);
      pen.rect(4, 4, 2, 2);
      pen.fill();
      break;
    case 'cross':
    case 'hatch':
      for (const shift of [-patternSize, 0, patternSize]) {
        pen.moveTo(shift, patternSize);
        pen.lineTo(shift + patternSize, 0);
        if (name === 'cross') {
          pen.moveTo(shift, 0);
          pen.lineTo(shift + patternSize, patternSize);
        }
      }
      pen.stroke();
      break;
  }
  const pattern = context.createPattern(tile, 'repeat') as CanvasPattern;
  pattern.setTransform(new DOMMatrix().scale(1 / scale));
  return pattern;
}
