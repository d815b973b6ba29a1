// Prints the arrival sequences of the openb experiments for any seed, in the form of arrival_sequences.txt:
//
//	go run test/bench/arrivals.go DIRECTORY 47 51 cpu100 gpushare60 | gzip >arrival_sequences.txt.gz
//
// DIRECTORY has the node list and the pod lists of the published simulator. It draws from Go's math/rand in the same order as that
// simulator: shuffle the pods, remove or repeat some until they ask for 130 % of the GPUs, rank the nodes.
package main

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"
)

// Between the pods and the nodes, the simulator draws this many numbers for other purposes.
const otherDraws = 10

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	check(err)
	return value
}

// Rows of a CSV file as columns by name.
func columns(path string) map[string][]string {
	file, err := os.Open(path)
	check(err)
	rows, err := csv.NewReader(file).ReadAll()
	check(err)
	result := map[string][]string{}
	for at, name := range rows[0] {
		for _, row := range rows[1:] {
			result[name] = append(result[name], row[at])
		}
	}
	return result
}

// Row numbers in the order of the names.
func byName(names []string) []int {
	rows := make([]int, len(names))
	for row := range rows {
		rows[row] = row
	}
	sort.Slice(rows, func(one, other int) bool { return names[rows[one]] < names[rows[other]] })
	return rows
}

func main() {
	if len(os.Args) < 5 {
		check(fmt.Errorf("usage: arrivals.go DIRECTORY FIRST-SEED LAST-SEED VARIANT..."))
	}
	directory, first, last := os.Args[1], number(os.Args[2]), number(os.Args[3])
	nodes := columns(directory + "/openb_node_list_gpu_node.csv")
	target := 0.0
	for _, gpus := range nodes["gpu"] {
		target += 1.3 * float64(number(gpus)*1000)
	}
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for _, variant := range os.Args[4:] {
		pods := columns(directory + "/openb_pod_list_" + variant + ".csv")
		named := byName(pods["name"])
		whole := func(row int) int { return number(pods["num_gpu"][row]) * number(pods["gpu_milli"][row]) }
		for seed := first; seed <= last; seed++ {
			random := rand.New(rand.NewSource(int64(seed)))
			random.Int()
			list := append([]int{}, named...)
			random.Shuffle(len(list), func(one, other int) { list[one], list[other] = list[other], list[one] })
			asked := 0
			for _, row := range list {
				asked += whole(row)
			}
			if float64(asked) > target {
				for float64(asked) > target {
					at := random.Intn(len(list))
					asked -= whole(list[at])
					list = append(list[:at], list[at+1:]...)
				}
			} else {
				for {
					row := named[random.Intn(len(named))]
					// As published: one GPU of the pod is compared, all of them are added.
					if float64(asked+number(pods["gpu_milli"][row])) > target {
						break
					}
					asked += whole(row)
					list = append(list, row)
				}
			}
			for draw := 0; draw < otherDraws; draw++ {
				random.Int63()
			}
			drawn := random.Perm(len(nodes["sn"]))
			ranks := make([]int, len(drawn))
			for at, row := range byName(nodes["sn"]) {
				ranks[row] = drawn[at]
			}
			fmt.Fprintf(out, "%s %d P%s\n", variant, seed, words(list))
			fmt.Fprintf(out, "%s %d N%s\n", variant, seed, words(ranks))
		}
	}
}

func words(numbers []int) string {
	text := []byte{}
	for _, number := range numbers {
		text = strconv.AppendInt(append(text, ' '), int64(number), 10)
	}
	return string(text)
}
