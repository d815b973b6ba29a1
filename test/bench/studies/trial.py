"""One trial: a line in LOG for its start with its point, and one for its end; returns and prints its loss. Arguments: X LOG"""
import sys
import time


def run(x, log):
    write(log, "start %d %d" % (time.time_ns(), x))
    time.sleep(0.15)
    write(log, "end %d" % time.time_ns())
    return (x - 7) ** 2


def write(log, line):
    with open(log, "a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    print("loss=%d" % run(int(sys.argv[1]), sys.argv[2]))
