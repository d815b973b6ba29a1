C () 
{ 
    T send-keys -t $1 C-a;
    sleep .15;
    T send-keys -t $1 "$2";
    sleep ${3:-.7}
}
